"""What several figures stand on: sliders, choosers, grids of cells, and programs read line by line."""
