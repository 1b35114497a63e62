/**
 * What an app behind a port is told of who asks. The word is the service's: it alone signs contexts, and what a client says
 * of itself it overwrites (threats.md X13), so that its `X-Forwarded-*` are the browser's side of the way.
 */
import type { IncomingMessage } from "node:http";
import type { HeaderRules } from "../src/proxy/headers.ts";

/** A name below `localhost`, with or without a port: a preview's on the machine of whoever looks at it. */
const LOCAL_NAME = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.localhost(?::\d{1,5})?$/;

/**
 * Host and forwarded headers for the app on `port`. Development servers take `*.localhost` for their own, and their
 * redirects and checks of Origin are right with the host that the browser knows. Other names they refuse
 * (DNS rebinding): there the app sees its own address.
 */
export const visitorOf = ({ headers }: IncomingMessage, port: number): HeaderRules => {
  const own = `127.0.0.1:${port}`;
  const {
    "x-forwarded-for": client,
    "x-forwarded-host": host,
    "x-forwarded-proto": proto,
  } = headers as Readonly<Record<string, string | undefined>>;
  if (client === undefined || host === undefined || proto === undefined) return { host: own };
  return { host: LOCAL_NAME.test(host) ? host : own, forwarded: { for: client, host, proto } };
};
