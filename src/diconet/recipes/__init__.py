"""How each task is trained, evaluated and set beside the paper; one module a task.

A recipe has `Settings` (a frozen dataclass with a `train: TrainConfig`), `train_model`, `evaluate`
and `reproduce`; `train_all` gives `reproduce` networks trained anew, and `PARTS` are what networks
for the task are made of. Only recipes and the command line know about presets.
"""
