"""Where source layers read from."""

from . import _cortado


class Data(_cortado.Data):
    __doc__ = _cortado.Data.__doc__

    def batches(self, layer, iterable, sample_shapes=(), phase=None):
        """Reads batch after batch of an iterable, whose items have an array a top, samples first; they are copied.

        Where it ends, it begins again, unless it is an iterator: then it must last. It is read in order, whatever a
        snapshot says; a training that goes on from one sees the same data only by arrays() and fill().
        """
        iterator = iter(iterable)

        def fill(request):
            nonlocal iterator
            arrays = next(iterator, None)
            if arrays is None:
                iterator = iter(iterable)
                arrays = next(iterator, None)
            if arrays is None:
                raise _cortado.UserError(f"data of layer '{layer}': there are no more batches; give an iterable without end")
            begin, end = request["begin"], request["end"]
            return [array[begin:end] if len(array) == request["batch"] else array for array in arrays]

        self.fill(layer, fill, [tuple(shape) for shape in sample_shapes], phase)
