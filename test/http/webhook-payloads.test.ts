/** Every payload that GitHub documents, signed by its own library: taken, kept byte for byte, rendered (spec 4.1, 5.4). */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestService, type TestService } from "../support/service.ts";
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
} from "./world.ts";

interface Event {
  readonly name: string;
  readonly examples: readonly Fields[];
}

const EVENTS = JSON.parse(
  readFileSync(fileURLToPath(import.meta.resolve("@octokit/webhooks-examples")), "utf8"),
) as readonly Event[];
const PAYLOADS = EVENTS.flatMap(({ name, examples }) =>
  examples.map((example) => ({ name, example, delivery: randomUUID(), body: JSON.stringify(example) })),
);

let service: TestService;
let pid = "";
beforeAll(async () => {
  // One session is enough: the others wait, with their prompts rendered.
  service = await startTestService({ PLATFORM_TIER_CAPS: '{"free": 1}' });
  const prompt = "{{ body.action }}|{{ body.sender.login }}|{{ body.repository.full_name }}|{{ body }}";
  pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push", prompt) } });
  await putSecret(service, pid, SECRET_NAME, SECRET);
});
afterAll(() => service.close());

/** The ledger by delivery id. */
const ledger = async (): Promise<ReadonlyMap<unknown, Fields>> => {
  const rows: Fields[] = [];
  for (let cursor = ""; ;) {
    const target = `/v1/projects/${pid}/fires?limit=200${cursor === "" ? "" : `&cursor=${cursor}`}`;
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

it(`takes all ${PAYLOADS.length} of them, and keeps each as it came`, async () => {
  expect(PAYLOADS.length).toBeGreaterThan(100);
  const answers = await Promise.all(
    PAYLOADS.map(async ({ name, delivery, body }) =>
      deliver(service, `${pid}/push`, {
        body,
        headers: {
          "content-type": "application/json",
          "user-agent": "GitHub-Hookshot/abc",
          "x-github-event": name,
          "x-github-delivery": delivery,
          "x-hub-signature-256": await sign(SECRET, body),
        },
      }),
    ),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  const rows = await ledger();
  expect(rows.size).toBe(PAYLOADS.length);
  await Promise.all(
    PAYLOADS.map(async ({ example, delivery, body }) => {
      const id = String(rows.get(delivery)?.["id"]);
      const fire = fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/fires/${id}`), 200));
      const headers = {
        content_type: "application/json",
        user_agent: "GitHub-Hookshot/abc",
        forwarded_for: null,
      };
      expect(fire["request"]).toEqual({ headers, body, encoding: "utf8" });
      const named = [
        text(example["action"]),
        at(example, "sender", "login"),
        at(example, "repository", "full_name"),
      ];
      expect(fire["prompt"]).toBe([...named, body].join("|"));
    }),
  );
});
