"""Prints which arguments a file's function `step` takes, as one line of JSON, without running the file; its path is the argument."""

import ast
import json
import os
import sys


def bindings(body):
    """Each statement at the top of a file that gives a meaning to `step`, in their order; those within `if`, `try` and `with` too."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name == "step":
                yield node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            if any((alias.asname or alias.name.partition(".")[0]) in ("step", "*") for alias in node.names):
                yield node
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(part, ast.Name) and part.id == "step" for target in targets for part in ast.walk(target)):
                yield node
        else:
            for name in ("body", "handlers", "orelse", "finalbody", "cases"):
                yield from bindings(getattr(node, name, []))


def parameters(step, source):
    """Those that can be given by name, each with the text of its default."""
    arguments = step.args
    placed = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(placed) - len(arguments.defaults)) + arguments.defaults + arguments.kw_defaults
    text = lambda default: None if default is None else ast.get_source_segment(source, default)
    return [{"name": one.arg, "default": text(default)} for one, default in zip(placed + arguments.kwonlyargs, defaults)]


def signature(path):
    name = os.path.basename(path)
    try:
        with open(path, "rb") as file:
            content = file.read()
        tree = ast.parse(content, path)
    except OSError as error:
        return {"error": f"{path} cannot be read: {error.strerror}"}
    except SyntaxError as error:
        line = f" in line {error.lineno}" if error.lineno else ""
        return {"error": f"{name} has a syntax error{line}: {error.msg}"}
    except ValueError as error:
        return {"error": f"{name} is not Python text: {error}"}
    found = list(bindings(tree.body))
    if not found:
        remedy = "it needs `def step(batch_size):` that returns a function that runs one step"
        return {"error": f"{name} defines no function `step`; {remedy}"}
    # Only a single plain definition shows what `step` is; otherwise the file must run first.
    if len(found) > 1 or not isinstance(found[0], ast.FunctionDef):
        return {"parameters": None, "any": True}
    source = content.decode("utf-8", "replace")
    return {"parameters": parameters(found[0], source), "any": found[0].args.kwarg is not None}


print(json.dumps(signature(sys.argv[1])))
