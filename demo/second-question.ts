/** A person talks to the agent in the session in which it has worked. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "./client.ts";
import { epochMs, type Narrator } from "./narrator.ts";

/** A person's words. The scripted model runs the command; another model may do as it likes. */
const QUESTION = "What is the newest commit on your branch?";
const TEXT = `${QUESTION}\n\nrun: git log -1 --format='%h %s'`;

const LOOK_MS = 100;
const DEADLINE_MS = 5 * 60 * 1000;

interface Item {
  readonly id: string;
  readonly kind: string;
  readonly role: string | null;
  readonly status: string;
  readonly turn_id: string | null;
  readonly author: { readonly name: string } | null;
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly tool: { readonly name: string; readonly output: string } | null;
  readonly error: { readonly message: string } | null;
}
interface Conversation {
  readonly items: readonly Item[];
  readonly state: { readonly state: string };
}

const firstLine = (text: string): string => text.trim().split("\n")[0] ?? "";
const wordsOf = ({ content }: Item): string => content.map(({ text = "" }) => text).join("");

/** The text of a finished item. Null: nothing to show. */
const told = (item: Item): string | null => {
  if (item.status !== "completed") return null;
  if (item.kind === "tool") {
    const does = item.tool?.name === "bash" ? "runs a command" : `uses ${item.tool?.name ?? "a tool"}`;
    return `${does}: ${firstLine(item.tool?.output ?? "")}`;
  }
  return item.kind === "message" && item.role === "agent" ? `says: ${firstLine(wordsOf(item))}` : null;
};

/** Asks a second thing. @throws if the agent does not answer */
export const askSecondThing = (client: Client, narrator: Narrator, sessionPath: string): Promise<void> =>
  askAgent(client, narrator, { sessionPath, shown: QUESTION, text: TEXT });

/**
 * Sends a message, and reports the answer as it comes.
 *
 * @param message.shown what the reader of the demo sees of its text
 * @throws if the agent does not answer
 */
export const askAgent = async (
  client: Client,
  narrator: Narrator,
  {
    sessionPath,
    shown: asked,
    text: whole,
  }: {
    readonly sessionPath: string;
    readonly shown: string;
    readonly text: string;
  },
): Promise<void> => {
  const id = randomUUID();
  await client.send("POST", `${sessionPath}/messages`, { id, text: whole });
  narrator.say("person", `asks: ${asked}`);
  const shown = new Set<string>();
  for (const deadline = epochMs() + DEADLINE_MS; epochMs() < deadline;) {
    // eslint-disable-next-line no-await-in-loop -- it looks again and again, in order
    const { items, state } = await client.get<Conversation>(`${sessionPath}/conversation`);
    const turn = items.filter((item) => item.turn_id === id && item.id !== id).toReversed();
    for (const item of turn) {
      const text = told(item);
      if (text === null || shown.has(item.id)) continue;
      shown.add(item.id);
      narrator.say("agent", text);
    }
    const message = items.find((item) => item.id === id);
    if (message?.status === "failed") throw new Error(message.error?.message ?? "the message was refused");
    if (state.state === "idle" && turn.some(({ kind, role }) => kind === "message" && role === "agent"))
      return;
    // eslint-disable-next-line no-await-in-loop
    await delay(LOOK_MS);
  }
  throw new Error("the agent did not answer");
};
