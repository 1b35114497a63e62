/** A browser that knows several nodes of one service. */

/** A way into the service through one node. */
interface Way {
  readonly life: {
    readonly url: string;
    readonly call: (method: string, target: string) => Promise<Readonly<Record<string, unknown>>>;
  };
}

/**
 * Opens a one-time link of one node at the other, follows events at the first, and signs out at the other.
 *
 * @returns whether the stream ended, and the status of the next request at each node
 */
export const signedOutElsewhere = async (opener: Way, other: Way, project: string) => {
  const { url } = await opener.life.call("POST", "/dashboard/links");
  const { pathname, search } = new URL(String(url));
  const opened = await fetch(`${other.life.url}${pathname}${search}`, { redirect: "manual" });
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
