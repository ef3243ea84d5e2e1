"""The inside of the stores of grids: rings of panes and slices, and how windows are put together."""
