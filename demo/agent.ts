/** The agent's actions, read from the agent runtime's own API through the service's relay. */
import { type Client, Refused } from "./client.ts";

/** One action: a tool call, or text. */
export interface AgentAct {
  /** Null: the agent wrote `text`. */
  readonly tool: string | null;
  readonly text: string;
  /** ms since the epoch. */
  readonly at: number;
}

interface Part {
  readonly id: string;
  readonly type: string;
  readonly tool?: string;
  readonly text?: string;
  readonly time?: { readonly end?: number };
  readonly state?: {
    readonly status: string;
    readonly title?: string;
    readonly time?: { readonly end?: number };
  };
}
interface Message {
  readonly info: {
    readonly role: string;
    readonly finish?: string;
    readonly time: { readonly completed?: number };
    readonly error?: { readonly name: string; readonly data?: { readonly message?: string } };
  };
  readonly parts: readonly Part[];
}

/**
 * Reads the conversation that the daemon began.
 *
 * @param path of the relay to the runtime
 * @param title the agent session's title: the platform's session id (api.md 7)
 */
export const watchAgent = (client: Client, path: string, title: string) => {
  const told = new Set<string>();
  return {
    /** The new actions since the last look, and whether the turn is over. @throws if the turn ended in an error. */
    look: async (): Promise<{ readonly acts: readonly AgentAct[]; readonly atRest: boolean }> => {
      const messages = await conversation(client, path, title);
      const last = messages.at(-1)?.info;
      if (last?.error !== undefined) {
        throw new Error(`the agent failed: ${last.error.data?.message ?? last.error.name}`);
      }
      const acts = messages
        .filter(({ info }) => info.role === "assistant")
        .flatMap(({ parts }) => parts)
        .filter(({ id }) => !told.has(id))
        .flatMap((part) => {
          const act = actOf(part);
          if (act !== null) told.add(part.id);
          return act === null ? [] : [act];
        });
      return { acts, atRest: last?.role === "assistant" && last.finish === "stop" };
    },
  };
};

/** All messages of the agent session. Empty until the daemon has begun it. */
const conversation = async (client: Client, path: string, title: string): Promise<readonly Message[]> => {
  try {
    const sessions = await client.get<readonly { id: string; title: string }[]>(`${path}/session`);
    const session = sessions.find((one) => one.title === title);
    return session === undefined
      ? []
      : await client.get<readonly Message[]>(`${path}/session/${session.id}/message`);
  } catch (cause) {
    // A runtime that restarts is unavailable for a moment (api.md 7).
    if (cause instanceof Refused && (cause.status === 502 || cause.status === 503)) return [];
    throw cause;
  }
};

/** Null for an unfinished part, and for a part that is not an action. */
const actOf = ({ type, tool, text, time, state }: Part): AgentAct | null => {
  if (type === "text" && time?.end !== undefined) return { tool: null, text: text ?? "", at: time.end };
  if (type !== "tool" || state?.time?.end === undefined) return null;
  const outcome = state.status === "error" ? " (failed)" : "";
  return { tool: tool ?? "tool", text: `${state.title ?? ""}${outcome}`, at: state.time.end };
};
