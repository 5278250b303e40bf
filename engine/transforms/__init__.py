"""Function transforms, and the forward mode of differentiation."""

FOR_TANGENTS = "tangents"  # how to record under no_grad in forward mode: nodes that carry tangents, and nothing more
