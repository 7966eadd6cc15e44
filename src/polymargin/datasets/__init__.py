"""The simulators of the papers and loaders for real data."""
