/**
 * An agent of the Agent Client Protocol as a program of its own. At the message "deaf" it closes its input and goes on for ever,
 * whatever it is sent. It answers every other message.
 */
import { createInterface } from "node:readline";

interface Call {
  readonly id?: number;
  readonly method: string;
  readonly params: { readonly prompt?: readonly { readonly text: string }[] };
}

const send = (message: object): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const say = (text: string): void =>
  send({
    method: "session/update",
    params: {
      sessionId: "s",
      update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
    },
  });

const RESULTS: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: 1, agentCapabilities: { loadSession: true } },
  "session/new": { sessionId: "s" },
  "session/load": {},
};

process.on("SIGTERM", () => undefined);
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the daemon under test speaks the protocol
  const { id, method, params } = JSON.parse(line) as Call;
  if (id === undefined) return;
  if (method !== "session/prompt") return send({ id, result: RESULTS[method] });
  const text = params.prompt?.[0]?.text ?? "";
  say(`I heard ${text}`);
  if (text !== "deaf") return send({ id, result: { stopReason: "end_turn" } });
  process.stdin.destroy();
  setInterval(() => say("."), 1000);
});
