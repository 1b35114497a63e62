/** Parts of the descriptions of raw routes in the OpenAPI document. */
/** A JSON object in the document. */
export type Node = Readonly<Record<string, unknown>>;

export const ERROR_REF = "#/components/schemas/Error";

export const json = (schema: Node, description: string): Node => ({
  description,
  content: { "application/json": { schema } },
});
export const refusal = (description: string): Node => json({ $ref: ERROR_REF }, description);
export const textAnswer = (type: string, description: string): Node => ({
  description,
  content: { [type]: { schema: { type: "string" } } },
});

export const headerParameter = (name: string, description: string): Node => ({
  name,
  in: "header",
  required: false,
  description,
  schema: { type: "string" },
});

export interface RawOperation {
  readonly tag: string;
  readonly id: string;
  readonly summary: string;
  readonly parameters?: readonly Node[];
  readonly responses: Readonly<Record<string, Node>>;
  /** The default is the bearer token. */
  readonly security?: readonly Node[];
  readonly body?: string;
}

export const reading = {
  401: refusal("Missing, invalid or expired token."),
  403: refusal("The token does not have permission."),
  404: refusal("Not found."),
};
