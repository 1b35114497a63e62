/**
 * Headers that tell an app behind a port who makes the request. The service provides the values: it alone signs
 * contexts, and it overwrites what a client says about itself (threats.md X13). So its `X-Forwarded-*` describe the
 * browser's side of the connection.
 */
import type { IncomingMessage } from "node:http";
import type { HeaderRules } from "../../src/proxy/headers.ts";

/** A name below `localhost`, with or without a port: a preview's, on its viewer's machine. */
const LOCAL_NAME = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.localhost(?::\d{1,5})?$/;

/**
 * Host and forwarded headers for the app on `port`. Development servers accept `*.localhost`, and with the browser's
 * host their redirects and Origin checks are correct. They refuse other names (DNS rebinding), so in that case the app
 * sees its own address.
 */
export const visitorHeaders = ({ headers }: IncomingMessage, port: number): HeaderRules => {
  const own = `127.0.0.1:${port}`;
  const {
    "x-forwarded-for": client,
    "x-forwarded-host": host,
    "x-forwarded-proto": proto,
  } = headers as Readonly<Record<string, string | undefined>>;
  if (client === undefined || host === undefined || proto === undefined) return { host: own };
  return { host: LOCAL_NAME.test(host) ? host : own, forwarded: { for: client, host, proto } };
};
