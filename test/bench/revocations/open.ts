/** What a token can hold open at a node: each is opened with the token, and says when it ended. */
import { once } from "node:events";
import { request, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import type { Life } from "../../support/service/process-service.ts";
import { WEBSOCKET } from "../../support/service/raw-http.ts";

export interface Opened {
  /** The instant at which it ended. */
  readonly ended: Promise<number>;
}

export interface Place {
  readonly life: Life;
  readonly project: string;
  /** A session whose agent runtime is `ECHO_AGENT`. */
  readonly session: string;
  readonly token: string;
}

const asked = ({ life }: Place, target: string, options: RequestOptions): ClientRequest =>
  request(`${life.url}${target}`, { ...options, agent: false }).on("error", () => undefined);

const whenOver = (stream: { once: (event: "close", listener: () => void) => unknown }): Promise<number> =>
  new Promise((resolve) => {
    stream.once("close", () => resolve(performance.now()));
  });

const bearer = ({ token }: Place) => ({ authorization: `Bearer ${token}` });

/** An answer that has begun. */
const answer = async (place: Place, target: string): Promise<Opened> => {
  const sent = asked(place, target, { headers: bearer(place) });
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`${target} answered ${response.statusCode}`);
  const ended = whenOver(response.on("error", () => undefined));
  await once(response, "data");
  response.resume();
  return { ended };
};

const webSocket = async (place: Place, target: string): Promise<Opened> => {
  const sent = asked(place, target, { headers: { ...bearer(place), ...WEBSOCKET } });
  sent.end();
  const [, socket] = (await once(sent, "upgrade")) as [IncomingMessage, IncomingMessage];
  return { ended: whenOver(socket.on("error", () => undefined).resume()) };
};

/** A push whose body has begun to arrive, and does not end. */
const push = async (place: Place): Promise<Opened> => {
  const { project, token } = place;
  const sent = asked(place, `/v1/git/${project}.git/git-receive-pack`, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`x:${token}`).toString("base64")}`,
      "content-type": "application/x-git-receive-pack-request",
      "content-length": "1000",
      expect: "100-continue",
    },
  });
  sent.flushHeaders();
  await once(sent, "continue");
  const ended = whenOver(sent);
  sent.on("response", (response) => response.resume());
  sent.write("00");
  return { ended };
};

/** Each kind of connection by its name. */
export const KINDS: Readonly<Record<string, (place: Place) => Promise<Opened>>> = {
  events: (place) => answer(place, `/v1/projects/${place.project}/events`),
  conversation: (place) => answer(place, `/v1/projects/${place.project}/sessions/${place.session}/events`),
  relayed: (place) =>
    answer(place, `/v1/projects/${place.project}/sessions/${place.session}/runtime/endless`),
  webSocket: (place) =>
    webSocket(place, `/v1/projects/${place.project}/sessions/${place.session}/runtime/socket`),
  push,
};
