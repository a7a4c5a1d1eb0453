# A person's file: its import, its function `step`, and where in it an error comes from.

import difflib
import hashlib
import importlib.machinery
import importlib.util
import traceback


class File:
    """A file with a function `step`, and the folder that it may import more from."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.folder, self.name = os.path.split(self.path)
        self.hashes = []

    def load(self):
        """Imports it, under its own name, as `import` does; it is read once, so that what is recorded of it is what ran."""
        source = self.read()
        self.hashes = [{"name": self.name, "sha256": hashlib.sha256(source).hexdigest()}]
        name = os.path.splitext(self.name)[0]
        if name in sys.modules:
            raise Refusal("spec", f"{self.name} has the name of a module that Python itself uses; give it another")
        code = self.compiled(source)
        loader = importlib.machinery.SourceFileLoader(name, self.path)
        self.module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, self.path, loader=loader))
        sys.path.insert(0, self.folder)
        sys.argv, sys.modules[name] = [self.path], self.module
        try:
            exec(code, self.module.__dict__)
        except (ImportError, SyntaxError) as error:
            self.refuse(error)
            raise
        self.step = getattr(self.module, "step", None)
        if not callable(self.step):
            remedy = "it needs `def step(batch_size):` that returns a function that runs one step"
            raise Refusal("spec", f"{self.name} defines no function `step`; {remedy}")

    def take(self, step):
        """A function of this process in place of the file's: nothing is imported."""
        self.module, self.step = sys.modules.get(step.__module__), step

    def read(self):
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise Refusal("spec", f"there is no file {self.path}") from None
        except OSError as error:
            raise Refusal("spec", f"{self.path} cannot be read: {error.strerror}") from None

    def compiled(self, source):
        try:
            return compile(source, self.path, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise Refusal("spec", self.misspelled(error)) from None
        except ValueError as error:
            raise Refusal("spec", f"{self.name} is not Python text: {error}") from None

    def misspelled(self, error):
        line = f" in line {error.lineno}" if error.lineno else ""
        return f"{os.path.basename(error.filename or self.path)} has a syntax error{line}: {error.msg}"

    def refuse(self, error):
        """What of an import's failures is a mistake in the person's own files, or lies in the Python that was chosen."""
        if isinstance(error, SyntaxError) and self.is_own(error.filename or ""):
            raise Refusal("spec", self.misspelled(error)) from None
        if isinstance(error, ImportError):
            self.show(error)
            kind = "spec" if self.is_own(error.path or "") else "device"
            raise Refusal(kind, f"{sys.executable} cannot import the step's file: {self.said(error)}", self.path_to(error)) from None

    def path_to(self, error):
        """How the person's own module is found that an import did not find: the working folder is not searched, and the file is part of no package."""
        here, name = os.getcwd(), error.name
        is_missing = isinstance(error, ModuleNotFoundError) and name
        if is_missing and any(os.path.exists(os.path.join(here, found)) for found in (name, f"{name}.py")):
            return f"`{name}` is in the working folder, which is not searched: add `--env PYTHONPATH=$PWD`"
        if "relative import" in text_of(error):
            parent, package = os.path.split(self.folder)
            parent = "$PWD" if parent == here else parent
            return f"the file is imported by itself, as part of no package: import from `{package}` by its name, and add `--env PYTHONPATH={parent}`"
        return None

    def files(self):
        """The file, and what it has imported from its own folder, with the hashes of what is in them."""
        paths = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        for path in sorted(path for path in paths if isinstance(path, str) and path != self.path and self.is_own(path)):
            try:
                with open(path, "rb") as file:
                    self.hashes.append({"name": os.path.relpath(path, self.folder), "sha256": hashlib.sha256(file.read()).hexdigest()})
            except OSError:
                pass
        return self.hashes

    def mentions(self, words):
        """Whether the text of one of its files has one of these words."""
        texts = []
        for file in self.hashes:
            with open(os.path.join(self.folder, file["name"]), encoding="utf-8", errors="replace") as opened:
                texts.append(opened.read())
        return any(re.search(words, text) for text in texts)

    def check(self, arguments):
        """Holds the names of the arguments against those that `step` takes, where that can be known."""
        try:
            parameters = inspect.signature(self.step).parameters
        except (TypeError, ValueError):
            return
        of = f"step() in {self.name}"
        named = {name: p for name, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        for name in arguments:
            if name not in named and not takes_any:
                near = difflib.get_close_matches(name, named, 1)
                hint = f" (did you mean `{near[0]}`?)" if near else ""
                raise Refusal("spec", f"{of} takes no `{name}`; it takes {', '.join(named) or 'nothing'}{hint}")
        for name, p in parameters.items():
            if p.kind is p.POSITIONAL_ONLY and p.default is p.empty:
                raise Refusal("spec", f"{of} takes `{name}` only by position, and arguments are passed by name: remove the `/`")
            if name in named and p.default is p.empty and name not in arguments:
                raise Refusal("spec", f"{of} needs `{name}`, and it is given no value: `--set {name}=...`, or a key of [sweep]")

    def make(self, arguments):
        """What runs one step with these arguments, and the model, where `step` gives one too."""
        made = self.step(**arguments)
        run, *more = made if isinstance(made, tuple) and made else (made,)
        if not callable(run):
            raise Refusal("spec", f"step() in {self.name} returned {type(run).__name__}: it must return a function that runs one step")
        return run, more[0] if more else None

    def is_own(self, path):
        """Whether a person wrote it, as opposed to installed it: an environment may lie in the same folder."""
        inside = path.startswith(os.path.join(self.folder, ""))
        installed = {"site-packages", "dist-packages"} & set(path[len(self.folder) :].split(os.sep))
        return path == self.path or inside and not installed and not path.startswith(os.path.join(os.path.dirname(os.__file__), ""))

    def place(self, error):
        """The innermost of a person's own lines that an error comes through: file and line; None where there is none."""
        walked = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__))
        own = [(os.path.basename(path), line) for path, line in walked if self.is_own(path)]
        return own[-1] if own else None

    def said(self, error):
        """One clause: what was raised, and where."""
        name, line = self.place(error) or (self.name, None)
        if isinstance(error, SystemExit):
            code = f": {first_line(error, 300).partition(': ')[2]}" if isinstance(error.code, str) else ""
            return f"{name} called sys.exit()" + (f" (line {line})" if line else "") + code
        if isinstance(error, KeyboardInterrupt):
            return f"{name} raised KeyboardInterrupt" + (f" (line {line})" if line else "")
        return first_line(error, 300) + (f" ({name}, line {line})" if line else "")

    def show(self, error):
        """The traceback, without the lines of this program that it begins with."""
        begin = error.__traceback__
        while begin is not None and begin.tb_frame.f_globals is globals():
            begin = begin.tb_next
        try:
            traceback.print_exception(type(error), error, begin or error.__traceback__)
        except Exception as broken:
            print(f"{type(error).__name__}, whose text cannot be had: {type(broken).__name__}", file=sys.stderr)
