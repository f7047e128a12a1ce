"""One folder per problem, each with one object (`PROBLEM`) that describes it completely."""
