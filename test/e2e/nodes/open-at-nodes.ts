/** What tests hold open at several nodes of one service, and a browser that knows them. */
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { expect } from "vitest";
import type { Life } from "../../support/service/process-service.ts";

/** A way into the service through one node. */
interface Way {
  readonly life: Life;
}

/** Opens what does not end by itself, and reads it. */
export const openedAt = async (
  { life }: Way,
  below: string,
  headers: Readonly<Record<string, string>>,
): Promise<Readable> => {
  const asked = request(`${life.url}${below}`, { headers, agent: false });
  asked.end();
  const [answer, socket] = (await Promise.race([once(asked, "upgrade"), once(asked, "response")])) as [
    IncomingMessage,
    Socket | undefined,
  ];
  expect(answer.statusCode).toBe(socket === undefined ? 200 : 101);
  const stream = socket ?? answer;
  return stream.on("error", () => undefined).resume();
};

/**
 * Opens a one-time link of one node at the other, follows events at the first, and signs out at the other.
 *
 * @returns whether the stream ended, and the status of the next request at each node
 */
export const signedOutElsewhere = async (opener: Way, other: Way, project: string) => {
  const { url } = await opener.life.call("POST", "/dashboard/links");
  const { pathname, searchParams } = new URL(String(url));
  // The button of the link's page.
  const opened = await fetch(`${other.life.url}${pathname}`, {
    method: "POST",
    body: new URLSearchParams({ code: searchParams.get("code") ?? "" }),
    redirect: "manual",
  });
  const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
  const send = ({ life }: Way, target: string, { method = "GET", csrf = "" } = {}) =>
    fetch(`${life.url}${target}`, { method, headers: { cookie, "x-csrf-token": csrf } });
  const { csrf } = (await (await send(opener, "/dashboard/session")).json()) as { csrf: string };
  const reader = (await send(opener, `/v1/projects/${project}/events`)).body?.getReader();
  await reader?.read();
  await send(other, "/dashboard/session", { method: "DELETE", csrf });
  const ended = (async () => {
    for (;;) if ((await reader?.read())?.done !== false) return true;
  })().catch(() => true);
  const isCut = await ended;
  const after = await Promise.all([opener, other].map((node) => send(node, "/v1/me")));
  return { isCut, statuses: after.map(({ status }) => status) };
};
