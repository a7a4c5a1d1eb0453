# What the kernel has counted of this process's threads; src/device/witness says what it means.

import resource


class Witness:
    """Reads how long each thread has run and waited for a processor. Its times are those between two readings of the same thread."""

    FOLDER = "/proc/self/task"

    def __init__(self):
        # By thread: its file, open, and its clock (include/linux/posix-timers.h).
        self.threads = {}
        # Threads that have computed in a step; only they are read, except in the first step after a look.
        self.computing, self.wanted = set(), {}

    def look(self):
        """The threads that are there now. To be called outside a step: listing them takes longer than reading them."""
        try:
            there = {int(name) for name in os.listdir(self.FOLDER)}
        except OSError:
            there = set()
        for thread in self.threads.keys() - there:
            os.close(self.threads.pop(thread)[0])
        for thread in there - self.threads.keys():
            try:
                self.threads[thread] = os.open(f"{self.FOLDER}/{thread}/schedstat", os.O_RDONLY), (~thread << 3) | 6
            except OSError:
                pass
        self.wanted = self.threads

    def read(self):
        """The state of all accounts, with the time; to be held against another by `between`."""
        accounts = {}
        for thread, (file, clock) in self.wanted.items():
            try:
                accounts[thread] = os.pread(file, 96, 0), time.clock_gettime_ns(clock)
            except OSError:
                # It is over.
                pass
        return time.perf_counter(), accounts, resource.getrusage(resource.RUSAGE_SELF)

    def between(self, before, after, share=1):
        """What came between two readings, for one of `share` steps."""
        (begun, accounts, usage), (ended, now, used) = before, after
        count = lambda name: (getattr(used, name) - getattr(usage, name)) / share
        threads = []
        for thread, (text, run_ns) in now.items():
            if thread not in accounts:
                continue
            text_before, run_before = accounts[thread]
            if text == text_before and run_ns == run_before and not (thread in self.computing and self.waits(thread)):
                continue
            self.computing.add(thread)
            (ran, waited, times), (ran_before, waited_before, times_before) = map(numbers, (text, text_before))
            if times == 0:
                # This kernel keeps no accounts.
                threads = []
                break
            waited_ns = waited - waited_before
            wait_s = ended - begun if run_ns == run_before and waited_ns == 0 else waited_ns * 1e-9
            threads.append([(run_ns - run_before) * 1e-9 / share, wait_s / share, (times - times_before) / share])
        self.wanted = {thread: opened for thread, opened in self.threads.items() if thread in self.computing}
        return {
            "threads": threads,
            "cpu_s": count("ru_utime") + count("ru_stime"),
            "page_faults": count("ru_minflt") + count("ru_majflt"),
            "voluntary_switches": count("ru_nvcsw"),
            "involuntary_switches": count("ru_nivcsw"),
        }

    def waits(self, thread):
        """Whether a thread that has not run would, if it had a processor."""
        try:
            with open(f"{self.FOLDER}/{thread}/stat") as file:
                return file.read().rpartition(") ")[2].startswith("R")
        except OSError:
            return False


# One for the process: it keeps files open.
WITNESS = Witness()


def numbers(text):
    return [int(number) for number in text.split()]
