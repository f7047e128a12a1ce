"""The problems diconet ships with. A task samples sets and says how good a solution is."""
