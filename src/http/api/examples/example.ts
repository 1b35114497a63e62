/** The part of an example that is written by hand. The rest is made from the schemas (make.ts). */
import type { Fields, Nouns } from "./records.ts";

/** A part of a record is enough. */
export interface OperationExample {
  readonly summary: string;
  readonly request?: Fields;
  /** Of the body of a success. A string if the body is text. */
  readonly response?: Fields | string;
  /** Of the body of a 202, if that differs. */
  readonly accepted?: Fields;
}

/** By the operation's id in the OpenAPI document. A summary alone: the whole example is made. */
export type Operations = Readonly<Record<string, string | OperationExample>>;

/** Of a feature. */
export interface Examples {
  readonly operations: Operations;
  readonly nouns?: Nouns;
}

/** The examples of an operation, complete. */
export interface WholeExample {
  readonly summary: string;
  readonly request?: unknown;
  /** By status: the body of each success that has one. */
  readonly responses: Readonly<Record<string, unknown>>;
}

/** Of all operations, with the usual values of their nouns. */
export interface WholeExamples {
  readonly operations: Readonly<Record<string, WholeExample>>;
  readonly nouns: Nouns;
}
