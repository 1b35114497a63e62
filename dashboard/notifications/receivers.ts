/** A project's outbound webhooks: their words, and what people do with them. In the API, these are the project's `webhooks`. */
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { projectLink } from "../elements/parts.ts";
import { ask, tell } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { EVENT_NAMES } from "./events.ts";

export type Receiver = Answer<"GET /v1/projects/:pid/webhooks/:id">;
export type Delivery = Answer<"GET /v1/projects/:pid/webhooks/:id/deliveries">["deliveries"][number];
type Try = NonNullable<Delivery["last_try"]>;

export const FORMATS: readonly (readonly [Receiver["format"], string])[] = [
  ["standard", "JSON, signed as in Standard Webhooks"],
  ["slack", "A message to a Slack channel"],
  ["discord", "A message to a Discord channel"],
];

/** Why a receiver was disabled. */
export const REASONS: Readonly<Record<string, string>> = {
  gone: "It answered 410: it is gone.",
  failing: "Every request failed for five days.",
  backlog: "10,000 deliveries wait for it.",
  requested: "A person disabled it.",
};

export const triedWords = ({
  status,
  error,
  took_ms: ms,
}: Pick<Try, "status" | "error" | "took_ms">): string =>
  error ?? (status === null ? "No answer." : `Answered ${status} in ${ms} ms.`);

/** What became of a test. @throws Error if it was not delivered */
export const testedWords = (tried: Answer<"POST /v1/me/notices/:place/test">): string => {
  if (!tried.delivered) throw new Error(`The test was not delivered. ${triedWords(tried)}`);
  return `The test was delivered. ${triedWords(tried)}`;
};

const paramsOf = (pid: string, { id }: Receiver) => ({ params: { pid, id } });

export const test = async (pid: string, receiver: Receiver): Promise<void> => {
  notice("A test is sent. This takes up to 15 seconds.");
  notice(testedWords(await request("POST /v1/projects/:pid/webhooks/:id/test", paramsOf(pid, receiver))));
};

export const rotate = async (pid: string, receiver: Receiver): Promise<void> => {
  const sure = await ask({
    title: `Rotate the secret of ${receiver.url}?`,
    text: "For 24 hours requests have two signatures, by the new secret and by the old one. Give the receiver the new secret in that time.",
    confirm: "Rotate",
  });
  if (sure === null) return;
  const { secret } = await request("POST /v1/projects/:pid/webhooks/:id/rotate", {
    ...paramsOf(pid, receiver),
    payload: {},
  });
  tell({ title: "The new signing secret", text: "It is not shown again.", secret });
};

export const setStatus = async (
  pid: string,
  receiver: Receiver,
  status: Receiver["status"],
): Promise<void> => {
  await request("PATCH /v1/projects/:pid/webhooks/:id", { ...paramsOf(pid, receiver), payload: { status } });
  notice(
    status === "enabled"
      ? "The receiver is enabled."
      : "The receiver is disabled. Events that happen meanwhile are not sent.",
  );
};

/** It leads to the list. */
export const remove = async (pid: string, receiver: Receiver): Promise<void> => {
  const sure = await ask({
    title: `Remove ${receiver.url}?`,
    text: "It hears of no more events, and the list of its deliveries is deleted.",
    confirm: "Remove",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/projects/:pid/webhooks/:id", paramsOf(pid, receiver));
  location.hash = projectLink(pid, "/notifications");
};

export const sendAgain = async (pid: string, id: string, did: string): Promise<void> => {
  await request("POST /v1/projects/:pid/webhooks/:id/deliveries/:did/replay", { params: { pid, id, did } });
  notice("The delivery is sent again.");
};

/** @param typed its events are entries whose name is that of the event */
export const add = async (pid: string, typed: Readonly<Record<string, string>>): Promise<void> => {
  const { url = "", format } = typed;
  const events = EVENT_NAMES.filter((event) => typed[event] !== undefined);
  if (events.length === 0) throw new Error("Choose at least one event.");
  const { secret } = await request("POST /v1/projects/:pid/webhooks", {
    params: { pid },
    payload: { url, format: format as Receiver["format"], events },
  });
  if (secret === null) notice("The receiver is added. Send it a test.");
  else
    tell({
      title: "The receiver's signing secret",
      text: "The receiver verifies requests with it. It is not shown again.",
      secret,
    });
};
