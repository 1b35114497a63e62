/** Deliveries to a webhook trigger that a person sends: the smallest one that passes its filter, as lines to paste. */
import type { Answer } from "../../src/cli/contract.ts";

export type Trigger = Answer<"GET /v1/projects/:pid/triggers">["triggers"][number];
type Filter = NonNullable<Trigger["filter"]>;

/** The settings of a webhook trigger, which may not be on the default branch yet. */
export interface Receiver {
  readonly slug: string;
  readonly secret: string;
  readonly url: string;
  readonly filter: Pick<Filter, "events" | "branches" | "if"> | null;
}

/** Null: it is no webhook trigger. */
export const receiverOf = ({
  slug,
  secret_env: secret = "",
  webhook_url: url,
  filter,
}: Trigger): Receiver | null => (url === undefined ? null : { slug, secret, url, filter: filter ?? null });

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

/** Conditions on list elements and on headers are left out. */
export const sampleDelivery = ({ filter }: Pick<Receiver, "filter">) => {
  const [asked = "push"] = filter?.events ?? [];
  const body = emptyBody();
  const branch = branchOf(filter?.branches?.[0] ?? "main");
  const action = asked.slice(eventName(asked).length + 1);
  if (action !== "") body["action"] = action;
  if (eventName(asked) === "pull_request") put(body, ["pull_request", "base", "ref"], branch);
  else body["ref"] = `refs/heads/${branch}`;
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
