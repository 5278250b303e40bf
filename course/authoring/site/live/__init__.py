"""Figures that answer on a page of the site, without Python: their own front ends, and a table of what they show.

``cells`` finds a lesson's figures, ``states`` goes through their settings, ``packed`` writes them down for the page,
where ``theme/live.js`` looks them up.
"""
