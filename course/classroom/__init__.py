"""For those who teach: hand out, collect, grade, export; slides, handouts and a bank of questions."""
