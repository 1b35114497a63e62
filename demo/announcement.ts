/** The end of the demo: the agent uses a tool of another server, and a person approves the call. */
import { setTimeout as delay } from "node:timers/promises";
import { ANNOUNCE, BOARD, type Board } from "./board.ts";
import type { Client } from "./client.ts";
import { epochMs, type Narrator } from "./narrator.ts";
import { askAgent } from "./second-question.ts";

const LOOK_MS = 100;
const DEADLINE_MS = 5 * 60 * 1000;
const WISH = "Announce on the team's board that the note is written.";
/** A person's words. The scripted model calls the tool; another model may choose its own words. */
const TEXT = `${WISH}\n\nuse ${BOARD}_${ANNOUNCE}: {"text": "The note about the push is written."}`;

interface Waiting {
  readonly id: string;
  readonly connector: string;
  readonly tool: string;
  readonly arguments: unknown;
}

/** Stores the token of the board and accepts its tools, as an owner of the project does once. */
export const connectBoard = async (
  client: Client,
  narrator: Narrator,
  { projectId, token }: { readonly projectId: string; readonly token: string },
): Promise<void> => {
  const connector = `/v1/projects/${projectId}/connectors/${BOARD}`;
  const { failure } = await client.send<{ failure: string | null }>("PUT", `${connector}/credential`, {
    value: token,
  });
  if (failure !== null) throw new Error(failure);
  const { pin } = await client.get<{ pin: string | null }>(`${connector}/catalogue`);
  await client.send("POST", `${connector}/catalogue`, { action: "accept", pin });
  narrator.say("connector", `${BOARD}: its token is stored, and its tool ${ANNOUNCE} accepted`);
};

/** Waits for the call that the agent asks for, and approves it, as a person does. */
const approve = async (client: Client, narrator: Narrator, projectId: string): Promise<void> => {
  const approvals = `/v1/projects/${projectId}/approvals`;
  for (const deadline = epochMs() + DEADLINE_MS; epochMs() < deadline;) {
    // eslint-disable-next-line no-await-in-loop -- it looks again and again, in order
    const { approvals: waiting } = await client.get<{ approvals: readonly Waiting[] }>(
      `${approvals}?status=pending`,
    );
    const [call] = waiting;
    if (call !== undefined) {
      const { id, connector, tool, arguments: given } = call;
      narrator.say("approval", `the agent asks for ${connector} ${tool} ${JSON.stringify(given)}`);
      // eslint-disable-next-line no-await-in-loop
      await client.send("POST", `${approvals}/${id}/approve`, {});
      narrator.say("person", "approves the call");
      return;
    }
    // eslint-disable-next-line no-await-in-loop
    await delay(LOOK_MS);
  }
  throw new Error("the agent asked for no call");
};

/** Asks for the announcement, approves it, and reports what the board got. @throws if it got nothing */
export const announce = async (
  parts: { readonly client: Client; readonly narrator: Narrator; readonly board: Board },
  { projectId, sessionPath }: { readonly projectId: string; readonly sessionPath: string },
): Promise<void> => {
  const { client, narrator, board } = parts;
  const answered = askAgent(client, narrator, { sessionPath, shown: WISH, text: TEXT });
  await Promise.all([answered, approve(client, narrator, projectId)]);
  const line = board.lines.at(-1);
  if (line === undefined) throw new Error("the board got no announcement");
  narrator.say(BOARD, line);
};
