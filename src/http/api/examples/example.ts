/** What an example of an operation says. */

/** JSON of a request or an answer. */
type Json = Readonly<Record<string, unknown>>;

export interface OperationExample {
  readonly summary: string;
  readonly request?: Json;
  /** The body of a success. Absent if it has none. A string if the body is text. */
  readonly response?: Json | string;
  /** The body of a 202, if that differs. */
  readonly accepted?: Json;
}

/** By the operation's id in the OpenAPI document. */
export type Examples = Readonly<Record<string, OperationExample>>;
