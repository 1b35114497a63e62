/** The fake's stops and saves. */
type Json = Readonly<Record<string, unknown>>;

export interface FakeSaves {
  sessions: Json[];
  /** How much the saved work of each session takes, largest first. */
  saves: Json;
  /** The turns of a session whose saves are kept. */
  savedTurns: Json[];
}

const withoutSave = (session: Json, id: string): Json => {
  const saved = session["saved"] as { readonly earlier?: readonly Json[] } | null;
  const earlier = (saved?.earlier ?? []).filter((save) => save["id"] !== id);
  return { ...session, saved: saved && { ...saved, earlier } };
};

/** @param target the path below the project. @returns undefined also if the request is about something else */
export const savesAnswer = (world: FakeSaves, method: string, target: string): Json | null | undefined => {
  const [, group, id, part, save = ""] = target.split("/");
  if (group === "saves" && method === "GET") return world.saves;
  if (group !== "sessions") return undefined;
  const change = (changed: (session: Json) => Json): Json | undefined => {
    world.sessions = world.sessions.map((one) => (one["id"] === id ? changed(one) : one));
    return world.sessions.find((one) => one["id"] === id);
  };
  if (part === "stop") return change((one) => ({ ...one, status: "stopped" }));
  if (part !== "saves") return undefined;
  if (method === "GET") return { turns: world.savedTurns };
  change((one) => withoutSave(one, save));
  return null;
};
