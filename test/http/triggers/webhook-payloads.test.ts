/**
 * Every payload that GitHub documents, signed by its own library: taken, kept byte for byte, rendered (spec 4.1, 5.4); as
 * JSON and as the form that GitHub can send; and filtered by event.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  deliver,
  expectStatus,
  fields,
  listOf,
  makeProject,
  putSecret,
  SECRET,
  SECRET_NAME,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";
import { isDeep, sampled } from "../../support/vitest/rings.ts";

interface Event {
  readonly name: string;
  readonly examples: readonly Fields[];
}

const EVENTS = JSON.parse(
  readFileSync(fileURLToPath(import.meta.resolve("@octokit/webhooks-examples")), "utf8"),
) as readonly Event[];
/** Of those that only repeat an event, `npm test` takes the shortest. */
const PAYLOADS = EVENTS.flatMap(({ name, examples }) => {
  const bySize = examples.map((example) => ({
    name,
    example,
    delivery: randomUUID(),
    body: JSON.stringify(example),
  }));
  return isDeep ? bySize : bySize.toSorted((a, b) => a.body.length - b.body.length).slice(0, 1);
});

const EVENTS_WANTED = ["push", "pull_request.opened", "check_run"];
/** Some of the examples are of deleted branches. */
const MANIFEST = (prompt: string) =>
  [
    webhookEntry("push", prompt),
    webhookEntry("form", prompt),
    webhookEntry("some"),
    "[webhooks.push]\ndeletions = true\n\n[webhooks.form]\ndeletions = true\n",
    `[webhooks.some]\nevents = ${JSON.stringify(EVENTS_WANTED)}\ndeletions = true\n`,
  ].join("\n");

let service: TestService;
let pid = "";
beforeAll(async () => {
  // One session is enough: the others wait, with their prompts rendered.
  service = await shareService(1);
  const prompt = "{{ body.action }}|{{ body.sender.login }}|{{ body.repository.full_name }}|{{ body }}";
  pid = await makeProject(service, { files: { "platform.toml": MANIFEST(prompt) } });
  await putSecret(service, pid, SECRET_NAME, SECRET);
});
afterAll(() => service.close());

/** A trigger's ledger by delivery id. */
const ledger = async (slug: string): Promise<ReadonlyMap<unknown, Fields>> => {
  const rows: Fields[] = [];
  for (let cursor = ""; ;) {
    const target = `/v1/projects/${pid}/triggers/${slug}/fires?limit=200${cursor === "" ? "" : `&cursor=${cursor}`}`;
    // oxlint-disable-next-line no-await-in-loop -- a page names the next one
    const page = await service.request("GET", target);
    rows.push(...listOf(page, "fires"));
    const next = fields(page)["next_cursor"];
    if (next === null) return new Map(rows.map((row) => [row["delivery_id"], row]));
    cursor = String(next);
  }
};

const text = (value: unknown): string =>
  value === undefined || value === null
    ? ""
    : typeof value === "object"
      ? JSON.stringify(value)
      : String(value);
const at = (example: Fields, field: string, part: string): string =>
  text((example[field] as Fields | undefined | null)?.[part]);

const JSON_TYPE = "application/json";
const FORM_TYPE = "application/x-www-form-urlencoded";
/** As GitHub writes the body of either kind. */
const written = (body: string, type: string): string =>
  type === FORM_TYPE ? new URLSearchParams({ payload: body }).toString() : body;

/** Delivers all of them to a trigger. @returns the result of each, in their order. */
const deliverAll = (slug: string, type: string): Promise<readonly string[]> =>
  Promise.all(
    PAYLOADS.map(async ({ name, delivery, body }) => {
      const bytes = written(body, type);
      const answer = await deliver(service, `${pid}/${slug}`, {
        body: bytes,
        headers: {
          "content-type": type,
          "user-agent": "GitHub-Hookshot/abc",
          "x-github-event": name,
          "x-github-delivery": delivery,
          "x-hub-signature-256": await sign(SECRET, bytes),
        },
      });
      return `${answer.status} ${String(fields(answer)["status"])}`;
    }),
  );

const AS_JSON = ["push", JSON_TYPE] as const;

it.each(sampled([AS_JSON, ["form", FORM_TYPE]], [AS_JSON]))(
  `%s accepts all ${PAYLOADS.length} of them as %s, and stores each unchanged`,
  async (slug, type) => {
    expect(PAYLOADS.length).toBeGreaterThan(isDeep ? 100 : 30);
    const answers = await deliverAll(slug, type);
    const events = PAYLOADS.filter(({ name }) => name !== "ping");
    expect(answers.filter((answer) => answer === "200 pong")).toHaveLength(PAYLOADS.length - events.length);
    expect(answers.filter((answer) => answer.startsWith("202 "))).toHaveLength(events.length);
    const rows = await ledger(slug);
    expect(rows.size).toBe(events.length);
    await Promise.all(
      events.map(async ({ example, delivery, body }) => {
        const id = String(rows.get(delivery)?.["id"]);
        const fire = fields(
          expectStatus(await service.request("GET", `/v1/projects/${pid}/fires/${id}`), 200),
        );
        const headers = { content_type: type, user_agent: "GitHub-Hookshot/abc", forwarded_for: null };
        expect(fire["request"]).toEqual({ headers, body: written(body, type), encoding: "utf8" });
        const named = [
          text(example["action"]),
          at(example, "sender", "login"),
          at(example, "repository", "full_name"),
        ];
        expect(fire["prompt"]).toBe([...named, body].join("|"));
      }),
    );
  },
);

it("fires for the events that a filter names, and has a row for every other", async () => {
  const answers = await deliverAll("some", JSON_TYPE);
  const outcomeOf = ({ name, example }: (typeof PAYLOADS)[number]): string => {
    if (name === "ping") return "200 pong";
    const isWanted =
      EVENTS_WANTED.includes(name) || EVENTS_WANTED.includes(`${name}.${text(example["action"])}`);
    return isWanted ? "202 queued" : "200 skipped";
  };
  expect(answers).toEqual(PAYLOADS.map(outcomeOf));
  expect(new Set(answers)).toEqual(new Set(["200 pong", "200 skipped", "202 queued"]));
  const rows = await ledger("some");
  const skipped = PAYLOADS.filter((payload) => outcomeOf(payload) === "200 skipped");
  for (const { delivery } of skipped)
    expect(rows.get(delivery)).toMatchObject({ status: "skipped", reason: "filtered", session_id: null });
});
