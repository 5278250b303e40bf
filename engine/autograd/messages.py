"""The messages of autograd, in PyTorch's words, each on one line."""

# fmt: off
ANOMALY_HINT = "the backtrace further above shows the operation that failed to compute its gradient. The variable in question was changed in there or anywhere later. Good luck!"
ANOMALY_IS_SLOW = "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
BACKWARD_AND_VJP = "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
BATCHED_DIFFERS = "\nFor output {} and input {}:\n\n{}\n\nGot:\n{}\n\nExpected:\n{}\n"
BATCHED_HINT = "gradcheck or gradgradcheck failed while testing batched gradient computation. Call it with `{}=False`, or let the function and its backward use nothing that vmap cannot do for all samples at once."
DECORATED_CLASS = "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method and nothing else."
DETECTED = "Error detected in {}. "
DIRTY_IN_FORWARD_MODE = "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need to pass it to mark_dirty()."
DIRTY_NOT_AN_INPUT = "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be passed to ctx.mark_dirty()."
DIRTY_NOT_RETURNED = "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace must all be outputs of the Function."
DIRTY_VIEW = "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other operations)."
FAST_MODE = "\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \nabout fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\nNumerical:\n {}\nAnalytical:\n{}\n\nThe max per-element difference (slow mode) is: {}.\n"
FEW_DIGITS = "Input #{} requires gradient and is not a double precision floating point or complex. This check will likely fail if all the inputs are not of double precision floating point or complex. "
FORWARD_CREATE_GRAPH = 'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
FORWARD_NOT_VECTORIZED = "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
FORWARD_STRICT = 'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
GRADIENT_OF_NO_TENSOR = "function {} returned a gradient different than None at position {}, but the corresponding forward input was not a Variable"
GRAD_VARIABLES = "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
INDEPENDENT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the user-provided function. This is not allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is independent of the input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for example).",
}
INDEPENDENT_OF_INPUT = "The {} of the user-provided function is independent of input {}. This is not allowed in strict mode when create_graph=True."
INDUCED = "\n\nPrevious calculation was induced by {}. "
INDUCED_AT = "Traceback of forward call that induced the previous calculation:\n"
INFERENCE = "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
INFERENCE_UPDATE = "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
INSTANTIATED = "{} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch."
LEGACY_FUNCTION = "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
LEVEL_NOT_THE_LAST = "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
MISSING = {
    "back": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not allowed in strict mode as it prevents from using the double backward trick to replace forward mode AD.",
}
NOT_REENTRANT = "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {}."
NOT_RECORDED = "No forward pass information available. Enable detect anomaly during forward pass for more information."
NOT_TENSORS = "The {} given to {} must be either a Tensor or a tuple of Tensors but the {} has type {}."
NO_BACKWARD = "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
NO_INPUT_REQUIRES_GRAD = "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
NO_JVP = "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
NO_LEVEL = "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
NO_SETUP_CONTEXT = "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context staticmethod. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
NO_V = {
    "vjp": "The vector v can only be None if the user-provided function returns a single Tensor with a single element.",
    "jvp": "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element.",
}
NO_VMAP = "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
NO_VMAP_SUPPORT = "You tried to vmap over {}, but it does not have vmap support. Please override and implement the vmap staticmethod or set generate_vmap_rule=True. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
NUMBER_OF_GRADIENTS = "function {} returned an incorrect number of gradients (expected {}, got {})"
NUMBER_OF_TANGENTS = "Function's jvp returned an invalid number of forward gradients (expected {} but got {})"
NUMBER_OF_VALUES = "hook '{}' has returned an incorrect number of values (got {}, but expected {})"
ONLY_INPUTS = "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of the graph, please use torch.autograd.backward."
OUTPUT_INDEPENDENT = "Output {} of the user-provided function is independent of input {}. This is not allowed in strict mode."
OUTSIDE_OF_ALLOW_MUTATION = "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was originally recorded."
PACK_HOOK_WRITES = "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on the input to a pack hook."
RECORDED_AT = "Traceback of forward call that caused the error:\n"
SAVED_FOR_FORWARD = "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
SAVED_NO_TENSOR = "save_for_backward can only save variables, but argument {} is of type {}"
SAVED_ONCE = "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. Either access saved_tensors only once, or set clear_saved_tensors_on_access=False."
STRATEGY = 'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
STRICT_AND_VECTORIZED = "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set `strict=False` or `vectorize=False`."
STRIDE_0 = "The {}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
UNDEFINED_GRADIENTS = 'Expected all input grads to be undefined or zero when all output grads are undefined or zero. Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
UNDEFINED_IS_NEW = 'Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing callers of this function. If this is true for you, you can call this function with "check_undefined_grad=False" to disable the feature'
UNDEFINED_NOT_HANDLED = 'Expected backward function to handle undefined output grads. Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
UNSEEN_WRITE = "allow_mutation_on_saved_tensors() copies what operations on tensors overwrite; what was saved here was overwritten by something else, as an optimizer's step, a norm's running statistics or a collective: call backward() before that"
UNPACKED_NO_TENSOR = "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {}"
CHANGED = "Expected `func` to return outputs with the same {0} when inputs are perturbed {1}by {2}, but got: {0}s {3} and {4}."
CYCLE = "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak."
TANGENT_NOT_RETURNED = "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an input inplace, then the jvp function must modify the gradient inplace and return it as-is."
TANGENT_NOT_WRITTEN = "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
TANGENT_NO_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
TANGENT_OF_ANOTHER_BASE = "A custom Function is returning a view but the jvp is not returning a view of the same base as the given grad input."
TANGENT_OF_A_CONSTANT = "Function's jvp returned a gradient at position {}, but  the corresponding forward output is not a differentiable Tensor.You should return None at that position instead."
TANGENT_VIEWS_ANOTHER = "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
