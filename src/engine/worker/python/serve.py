# The loop that answers requests, and the messages of errors.


class Holder:
    """A worker that finds its prepared steps by their numbers."""

    def held(self, request):
        step = self.steps.get(request["id"])
        if step is None:
            raise Refusal("engine", "this step was prepared by a process that has ended")
        return step


def text_of(error):
    """What an error says; one of a person's own may fail to."""
    try:
        return str(error)
    except Exception:
        return ""


def kind_of(error):
    out_of_memory = isinstance(error, (MemoryError, getattr(sys.modules.get("torch"), "OutOfMemoryError", MemoryError)))
    words = r"out of memory|can't allocate memory|ALLOC_FAILED|not enough memory|RESOURCE_EXHAUSTED|OOM when allocating"
    return "out_of_memory" if out_of_memory or re.search(words, text_of(error)) else "engine"


def first_line(error, longest=None):
    text = next((line.strip() for line in text_of(error).splitlines() if line.strip()), "no message")
    return f"{type(error).__name__}: {text[:longest]}"


def answer(worker, line):
    """One request's answer: what the worker's method of that name gives, or why it could not. The worker says which errors it can state, and how."""
    request = json.loads(line)
    do = {name: getattr(worker, name) for name in worker.REQUESTED}
    try:
        return {"ok": do[request["do"]](request)}
    except Refusal as refusal:
        failure = {"kind": refusal.kind, "what": str(refusal), **({"help": refusal.help} if refusal.help else {})}
    except worker.ERRORS as error:
        failure = worker.failure(request["do"], error)
    # The exception is released here, and with its traceback the memory of the failed step.
    worker.tidy()
    return {"error": failure}


def send(answer):
    ANSWERS.write(json.dumps(answer) + "\n")
    ANSWERS.flush()


def serve(worker):
    for line in REQUESTS:
        send(answer(worker, line))
