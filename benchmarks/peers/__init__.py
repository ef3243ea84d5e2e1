"""Others who answer the same questions; each module is run by the Python that has them.

They know the data and the protocol of ``worker``, and nothing of the engine.
"""
