/** The fake's streams of server-sent events. */
import type * as http from "node:http";

type Json = Readonly<Record<string, unknown>>;

export const RESET = "event: reset\ndata: {}\n\n";

/** The id is how many lines there are up to it. */
export const lineFrame = (line: Json, index: number): string =>
  `id: ${index + 1}\nevent: line\ndata: ${JSON.stringify(line)}\n\n`;

export const openStream = (
  response: http.ServerResponse,
  among: Set<http.ServerResponse>,
  beginning: string,
): void => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(beginning);
  among.add(response);
  response.on("close", () => among.delete(response));
};
