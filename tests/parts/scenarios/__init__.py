"""Each scenario at a small size: its claims hold, and its measures are what they say."""
