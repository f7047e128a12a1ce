"""Networks that serve any problem: splits divide a set, merges put partial answers together."""
