/** Deliveries to a webhook trigger that a person sends: the smallest one that passes its filter, as lines to paste. */
import type { Answer } from "../../src/cli/contract.ts";
import { templateTokens } from "../../src/domain/trigger/placeholders.ts";

export type Trigger = Answer<"GET /v1/projects/:pid/triggers">["triggers"][number];
type Filter = NonNullable<Trigger["filter"]>;

/** The settings of a webhook trigger, which may not be on the default branch yet. */
export interface Receiver {
  readonly slug: string;
  readonly secret: string;
  readonly url: string;
  /** The template. A sample delivery has what it reads. */
  readonly prompt: string;
  readonly filter: Pick<Filter, "events" | "branches" | "if"> | null;
}

/** Null: it is no webhook trigger. */
export const receiverOf = ({
  slug,
  secret_env: secret = "",
  webhook_url: url,
  prompt,
  filter,
}: Trigger): Receiver | null =>
  url === undefined ? null : { slug, secret, url, prompt, filter: filter ?? null };

/** As one word of a shell. */
const word = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** The name of an event, without its action. */
const eventName = (event: string): string => event.replace(/\.[a-z_]+$/, "");

/** The events that the filter lets pass. Empty: all. */
export const eventsOf = ({ filter }: Pick<Receiver, "filter">): readonly string[] => [
  ...new Set((filter?.events ?? []).map(eventName)),
];

/** A branch that the pattern matches. */
const branchOf = (pattern: string): string => pattern.replaceAll(/\*+/g, "x");

type Body = Record<string, unknown>;

const isBody = (value: unknown): value is Body => typeof value === "object" && value !== null;

/** An object without a prototype: a path may be named as what all objects have. */
const emptyBody = (): Body => Object.create(null) as Body;

const put = (body: Body, [first = "", ...rest]: readonly string[], value: unknown): void => {
  if (rest.length === 0) {
    body[first] = value;
    return;
  }
  const known = body[first];
  const inner = isBody(known) ? known : emptyBody();
  body[first] = inner;
  put(inner, rest, value);
};

/** Values by the last part of a path, as GitHub has them. */
const SAMPLES: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ["number", 1],
  ["id", 1],
  ["login", "octocat"],
  ["html_url", "https://example.org/sample"],
  ["url", "https://example.org/sample"],
  ["ref", "main"],
  ["head_branch", "main"],
  ["draft", false],
]);
/** The name of a commit, in any field that ends so. */
const SHA = /(?:^|_)sha$|^(?:after|before)$/;

const sampleValue = (name: string): unknown =>
  SHA.test(name)
    ? "0123456789abcdef0123456789abcdef01234567"
    : (SAMPLES.get(name) ?? `A sample ${name.replaceAll("_", " ")}`);

const putSamples = (body: Body, prompt: string): void => {
  const paths = templateTokens(prompt)
    .map((token) => token.split("."))
    .filter(([root, ...rest]) => root === "body" && rest.length > 0 && rest.every((part) => part !== ""))
    // A whole object has a value once its parts have one.
    .toSorted((one, other) => other.length - one.length);
  for (const [, ...path] of paths) if (!isThere(body, path)) put(body, path, sampleValue(path.at(-1) ?? ""));
};

const isThere = (body: Body, path: readonly string[]): boolean => {
  let value: unknown = body;
  for (const part of path) value = isBody(value) ? value[part] : undefined;
  return value !== undefined;
};

/** The fields that the trigger's prompt reads, with values that pass its filter. Conditions on list elements and on headers are left out. */
export const sampleDelivery = ({ filter, prompt }: Pick<Receiver, "filter" | "prompt">) => {
  const [asked = "push"] = filter?.events ?? [];
  const body = emptyBody();
  putSamples(body, prompt);
  const branch = branchOf(filter?.branches?.[0] ?? "main");
  const action = asked.slice(eventName(asked).length + 1);
  if (action !== "") body["action"] = action;
  if (eventName(asked) === "pull_request") put(body, ["pull_request", "base", "ref"], branch);
  else if (eventName(asked) === "push" || filter?.branches != null) body["ref"] = `refs/heads/${branch}`;
  for (const [path, value] of Object.entries(filter?.if ?? {})) {
    const [root, ...rest] = path.split(".");
    if (root === "body" && rest.length > 0) put(body, rest, value);
  }
  return { event: eventName(asked), body };
};

/** A delivery by hand: lines that work when they are pasted. */
export const curlLines = (receiver: Receiver): string => {
  const { event, body } = sampleDelivery(receiver);
  return [
    `SECRET=${word(`the value of ${receiver.secret}`)}`,
    `BODY=${word(JSON.stringify(body))}`,
    String.raw`SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$SECRET" | sed 's/^.* //')`,
    `curl -sS ${word(receiver.url)} \\`,
    `  -H 'content-type: application/json' -H ${word(`x-platform-event: ${event}`)} \\`,
    `  -H "x-platform-signature: sha256=$SIGNATURE" --data-binary "$BODY"`,
  ].join("\n");
};

/** A job of GitLab that signs what it sends. */
export const gitlabLines = (receiver: Receiver): string => {
  const { event } = sampleDelivery(receiver);
  return [
    `notify-${receiver.slug}:`,
    "  image: alpine:3",
    "  rules:",
    `    - if: $CI_PIPELINE_SOURCE == "push" && $CI_COMMIT_BRANCH`,
    "  script:",
    "    - apk add --no-cache curl jq openssl",
    "    - |",
    String.raw`      BODY=$(jq -nc --arg ref "refs/heads/$CI_COMMIT_BRANCH" --arg sha "$CI_COMMIT_SHA" \ `.trimEnd(),
    `        --arg message "$CI_COMMIT_MESSAGE" '{ref: $ref, after: $sha, head_commit: {id: $sha, message: $message}}')`,
    `      SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$${receiver.secret}" | sed 's/^.* //')`,
    `      curl --fail-with-body -sS ${word(receiver.url)} \\`,
    `        -H 'content-type: application/json' -H ${word(`x-platform-event: ${event}`)} \\`,
    `        -H "x-platform-delivery: $CI_JOB_ID" -H "x-platform-signature: sha256=$SIGNATURE" --data-binary "$BODY"`,
  ].join("\n");
};
