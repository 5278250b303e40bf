"""The devices beside the host: ``sim`` and ``cuda``, each set up when it is first named.  See ``backend.Home``."""
