"""The common ground of several figures: sliders, choosers, grids of cells, and programs read line by line."""
