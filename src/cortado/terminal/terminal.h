#pragma once

namespace cortado {

// Opens the standard streams that are closed, on /dev/null. A closed one would be given to the next file that
// is opened, and what is printed would go there.
void open_standard_streams();

// Makes the functions below answer for the terminal of the process that started the job. A rank calls it: its
// own output may be a pipe that ends at a terminal (MPICH) or a terminal that ends in a file (OpenMPI).
void follow_terminal_of_job();

// True when standard output is a terminal, or that of the process that started this rank is.
bool writes_to_terminal();

// Columns of that terminal now; 80 where it does not say.
int terminal_columns();

// Tells the ranks that this process is about to start whether, and where, its standard output is a terminal.
void tell_ranks_of_terminal();

}  // namespace cortado
