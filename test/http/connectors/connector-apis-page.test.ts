/** The examples of docs/use/connector-apis.md, as a reader pastes them. Only the host is another one. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { codeBlocks, read } from "../../support/documents.ts";
import { expectStatus, fields, type Fields } from "../../support/service/requests.ts";
import { CREDENTIAL, ExecutorWorld, textOf } from "./executor-world.ts";

const blocks = codeBlocks(read("docs/use/connector-apis.md"));
const [openapi, http] = blocks.filter(({ language }) => language === "toml").map((block) => block.text);
const description = blocks.find(({ language }) => language === "yaml")?.text ?? "";

let world: ExecutorWorld;
let server: Server;
let origin = "";
const requests: string[] = [];
beforeAll(async () => {
  world = await ExecutorWorld.start();
  server = createServer((request, response) => {
    void text(request).then((body) => {
      const { method, url, headers } = request;
      const key = headers["x-api-key"] ?? headers.authorization;
      requests.push([method, url, key, headers.accept, body].join(" "));
      response.writeHead(200, { "content-type": "application/json" }).end('{"id":1}');
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await world.close();
  server.close();
});

/** A project with the example. Its tools need no person, so that a call is answered at once. */
const connected = async (slug: string, example = ""): Promise<string> => {
  const entry = example.replaceAll(/https:\/\/\w+\.example\.com/g, origin);
  const pid = await world.newProject(`[executor]\ndefault = "allow"\n${entry}`, {
    "api/tracker.yaml": description,
  });
  const answer = fields(await world.service.request("GET", `/v1/projects/${pid}/connectors`));
  expect(answer["errors"]).toEqual([]);
  expect((answer["connectors"] as readonly Fields[]).map((one) => one["slug"])).toEqual([slug]);
  const target = `/v1/projects/${pid}/connectors/${slug}/credential`;
  expectStatus(await world.service.request("PUT", target, { body: { value: CREDENTIAL } }), 200);
  await world.connect(pid, slug);
  return pid;
};

it("has an example of the kind openapi whose tools can be called", async () => {
  const project = await connected("tracker", openapi);
  const { by } = await world.freshSession(project);
  requests.length = 0;
  expect(textOf(await world.call("tracker_get_issue", { id: 7 }, { by, project }))).toBe('{"id":1}');
  expect(textOf(await world.call("tracker_create_issue", { body: { title: "Hi" } }, { by, project }))).toBe(
    '{"id":1}',
  );
  const accept = "application/json, text/*;q=0.9, */*;q=0.5";
  expect(requests).toEqual([
    `GET /api/issues/7 Bearer ${CREDENTIAL} ${accept} `,
    `POST /api/issues Bearer ${CREDENTIAL} ${accept} {"title":"Hi"}`,
  ]);
});

it("has an example of the kind http whose tools can be called", async () => {
  const project = await connected("notes", http);
  const { by } = await world.freshSession(project);
  requests.length = 0;
  const found = await world.call("notes_find_notes", { q: "a b", sort: "newest" }, { by, project });
  expect(textOf(found)).toBe('{"id":1}');
  await world.call("notes_add_comment", { id: 7, text: "Hi" }, { by, project });
  expect(requests).toEqual([
    `GET /v2/notes?q=a%20b&sort=newest ${CREDENTIAL} application/json `,
    `POST /v2/notes/7/comments ${CREDENTIAL} application/json {"text":"Hi"}`,
  ]);
});
