/**
 * Adds the summaries and examples of operations.ts to the OpenAPI document, and an example command to each operation.
 */
import type { Examples, OperationExample } from "./example.ts";
import { PATH_EXAMPLES } from "./records.ts";

/** A JSON object in the document. */
type Node = Readonly<Record<string, unknown>>;
export type Paths = Readonly<Record<string, Readonly<Record<string, Node>>>>;

/** Adds an example beside the schema of each content type. */
const withExample = (body: Node, example: unknown): Node => {
  const content = body["content"] as Readonly<Record<string, Node>> | undefined;
  if (content === undefined || example === undefined) return body;
  const illustrated = Object.entries(content).map(([type, media]) => [type, { ...media, example }] as const);
  return { ...body, content: Object.fromEntries(illustrated) };
};

const isSuccess = (status: string): boolean => status.startsWith("2");

const bodyOf = (status: string, example: OperationExample | undefined): unknown =>
  (status === "202" ? example?.accepted : undefined) ?? example?.response;

const GIT_PASSWORD = "http://x:$TOKEN@127.0.0.1:8080";

interface Called {
  readonly path: string;
  readonly method: string;
  readonly operation: Node;
  readonly example: OperationExample | undefined;
}

/** A shell command that calls the operation. */
const commandOf = ({ path, method, operation, example }: Called): string => {
  const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => PATH_EXAMPLES[name] ?? name);
  if (path.startsWith("/v1/git/")) {
    const action = operation["operationId"] === "git.push" ? "git push" : "git clone";
    return `${action} ${GIT_PASSWORD}/v1/git/${PATH_EXAMPLES["repository"] ?? ""}`;
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

const illustrated = (called: Called): Node => {
  const { operation, example } = called;
  const responses = operation["responses"] as Readonly<Record<string, Node>>;
  const body = operation["requestBody"] as Node | undefined;
  return {
    ...operation,
    ...(example === undefined ? {} : { summary: example.summary }),
    ...(body === undefined ? {} : { requestBody: withExample(body, example?.request) }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [
        status,
        isSuccess(status) ? withExample(response, bodyOf(status, example)) : response,
      ]),
    ),
    "x-codeSamples": [{ lang: "Shell", label: "curl", source: commandOf(called) }],
  };
};

export const illustrate = (paths: Paths, examples: Examples): Paths =>
  Object.fromEntries(
    Object.entries(paths).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).map(([method, operation]) => [
          method,
          illustrated({ path, method, operation, example: examples[String(operation["operationId"])] }),
        ]),
      ),
    ]),
  );
