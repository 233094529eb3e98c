package baton;

import com.fasterxml.jackson.annotation.JsonInclude;

/** Answers to the runner, in the form in which they are written as JSON. */
@JsonInclude(JsonInclude.Include.NON_NULL)
sealed interface Report {
  record Done(String op) implements Report {}

  record At(String op, double at) implements Report {}

  record Dropped(String op, double calledAt, double returnedAt) implements Report {}

  /** {@code error} is absent if there was none; {@code cpu} is in µs. */
  record Drained(String op, int samples, long unfinished, int errors, String error, long cpu) implements Report {}

  /** Both sizes are in bytes. */
  record Memory(String op, long resident, long heap) implements Report {}

  record Failed(String op, String error) implements Report {}
}
