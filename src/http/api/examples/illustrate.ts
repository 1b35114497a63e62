/**
 * Adds summaries and examples to the OpenAPI document, and an example command to each operation.
 */
import type { WholeExample, WholeExamples } from "./example.ts";
import { pathExample, PROJECT, type Nouns } from "./records.ts";

/** A JSON object in the document. */
type Node = Readonly<Record<string, unknown>>;
export type Paths = Readonly<Record<string, Readonly<Record<string, Node>>>>;

/** Adds an example beside the schema of each content type. */
const withExample = (body: Node, example: unknown): Node => {
  const content = body["content"] as Readonly<Record<string, Node>> | undefined;
  if (content === undefined || example === undefined) return body;
  const examples = Object.entries(content).map(([type, media]) => [type, { ...media, example }] as const);
  return { ...body, content: Object.fromEntries(examples) };
};

const GIT_PASSWORD = "http://x:$TOKEN@127.0.0.1:8080";

interface ExampleCall {
  readonly path: string;
  readonly method: string;
  readonly operation: Node;
  readonly example: WholeExample | undefined;
  readonly nouns: Nouns;
}

/** A shell command that calls the operation. */
const shellCommand = ({ path, method, operation, example, nouns }: ExampleCall): string => {
  const target = path.replaceAll(/(?<=([\w-]*)\/)\{(\w+)\}/g, (_, segment: string, name: string) =>
    pathExample(segment, name, nouns),
  );
  if (path.startsWith("/v1/git/")) {
    const action = operation["operationId"] === "git.push" ? "git push" : "git clone";
    return `${action} ${GIT_PASSWORD}/v1/git/${PROJECT}.git`;
  }
  const security = operation["security"] as readonly Node[] | undefined;
  const { request } = example ?? {};
  const lines = [
    `curl ${method === "get" || method.startsWith("x-") ? "" : `-X ${method.toUpperCase()} `}"http://127.0.0.1:8080${target}"`,
    ...(security === undefined ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...(request === undefined
      ? []
      : ['-H "Content-Type: application/json"', `-d '${JSON.stringify(request).replaceAll("'", "'\\''")}'`]),
    ...(operation["operationId"] === "webhooks.receive"
      ? ['-H "X-Platform-Signature: sha256=$SIGNATURE"', "--data-binary @payload.json"]
      : []),
  ];
  return lines.join(" \\\n  ");
};

const illustrateOperation = (call: ExampleCall): Node => {
  const { operation, example } = call;
  const responses = operation["responses"] as Readonly<Record<string, Node>>;
  const body = operation["requestBody"] as Node | undefined;
  return {
    ...operation,
    ...(example === undefined ? {} : { summary: example.summary }),
    ...(body === undefined ? {} : { requestBody: withExample(body, example?.request) }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [
        status,
        withExample(response, example?.responses[status]),
      ]),
    ),
    "x-codeSamples": [{ lang: "Shell", label: "curl", source: shellCommand(call) }],
  };
};

export const illustrate = (paths: Paths, { operations, nouns }: WholeExamples): Paths =>
  Object.fromEntries(
    Object.entries(paths).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).map(([method, operation]) => [
          method,
          illustrateOperation({
            path,
            method,
            operation,
            example: operations[String(operation["operationId"])],
            nouns,
          }),
        ]),
      ),
    ]),
  );
