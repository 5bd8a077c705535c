"""Values of a net as arrays that stay alive."""

import weakref

import numpy as np

everywhere = weakref.WeakSet()  # windows on parameters, which nets may share


class Window:
    """Memory that mirrors values of a net while somebody holds an array on it.

    What is written into the array is copied into the net before the net runs, and when the last array is gone. What the
    net computes is copied into the array after it has run. Nothing is copied where nothing was written.
    """

    def __init__(self, shape, read, write):
        self._read, self._write = read, write
        self._memory = np.empty(shape, np.float32)
        self._seen = np.empty(shape, np.float32)
        self.pull()

    @property
    def __array_interface__(self):
        return self._memory.__array_interface__

    def array(self):
        """A new array on the memory, which keeps this window."""
        return np.asarray(self)

    def pull(self):
        """Takes the net's values."""
        if self._read is None:
            return
        self._read(self._memory)
        self._seen[...] = self._memory

    def push(self):
        """Gives the net what was written since."""
        if self._write is None or np.array_equal(self._memory.view(np.int32), self._seen.view(np.int32)):
            return
        self._write(self._memory)
        self._seen[...] = self._memory

    def detach(self):
        """The values are gone: the arrays keep what they have."""
        self._read = self._write = None

    def __del__(self):
        try:
            self.push()
        except Exception:  # the net or the interpreter is at its end
            pass


class Pane:
    """Makes a window when an array is asked for and none is held."""

    def __init__(self, shape, read, write, windows):
        self._shape, self._read, self._write, self._windows = shape, read, write, windows
        self._window = None

    def forget(self):
        """Makes a new window for the next array."""
        self._window = None

    def array(self):
        window = self._window and self._window()
        if window is None:
            window = Window(self._shape(), self._read, self._write)
            self._window = weakref.ref(window)
            self._windows.add(window)
        return window.array()
