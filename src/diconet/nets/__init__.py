"""Networks for any problem: splits that divide a set, merges that combine partial answers."""
