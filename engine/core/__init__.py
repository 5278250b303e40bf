"""The core: what it takes to record operations and to go back through them.  Features attach from above.

Read the files in this order, for each stands on those before it (``docs/engine.md`` is the map):

graph      a Node has parents, saved values, rules and a time; ``node_class`` makes a class of nodes of derivatives
errors     what is said where the graph does not bear something
versions   when memory was written, so that a saved array which was overwritten is noticed
tensor     a Tensor is an array and the node that made it; a view knows its base
record     an operation's result gets its node, which keeps what the rules need and nothing more
rules      how a rule becomes an operation: one that moves elements, one whose cotangents share work
linear     what undoes a broadcast, a reduction and a cast: operations whose rules are one another
backward   cotangents travel from the newest node to the oldest, and end in the ``.grad`` of the leaves
observers  who sees each Tensor, or each node, that is made
views      a write into memory, and what it does to the graph of the tensor, its base and their views
"""
