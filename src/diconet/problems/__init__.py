"""One folder per problem, each with one object (`PROBLEM`) that says all there is to know of it."""
