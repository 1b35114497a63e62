/** The actions of an owner with a project's outbound webhooks, for actions.real.test.ts. */
import type { Action } from "./actions.ts";
import { NEW_SECRET, RECEIVER_ID } from "../fakes/fake-receivers.ts";
import { PROJECT_ID } from "../samples/sample-project.ts";

const RECEIVERS = `#/projects/${PROJECT_ID}/notifications`;
const ONE = `${RECEIVERS}/${RECEIVER_ID}`;
const API = `/v1/projects/${PROJECT_ID}/webhooks`;
const URL = "https://receiver.example.org/platform";

const inList = { hash: RECEIVERS, shows: ".row" };
const onOne = { hash: ONE, shows: ".row" };

export const RECEIVER_ACTIONS: readonly Action[] = [
  {
    name: "adds a receiver with the usual events",
    hash: RECEIVERS,
    shows: "form",
    does: async ({ write, press }) => {
      await write("Address", "https://other.example.org/hook");
      await press("Add the receiver");
    },
    writes: `POST ${API} {"url":"https://other.example.org/hook","format":"standard","events":["session.waiting","approval.waiting","session.work_unsaved","session.failed","change_request.opened","change_request.review_requested","fire.failed","queue.full","manifest.stale"]}`,
    tells: NEW_SECRET,
  },
  {
    name: "sends a receiver a test",
    ...inList,
    does: ({ press }) => press(`Send a test: ${URL}`),
    writes: `POST ${API}/${RECEIVER_ID}/test `,
    tells: "The test was delivered. Answered 204 in 84 ms.",
  },
  {
    name: "says why a test did not arrive",
    ...inList,
    change: (world) => {
      world.tested = {
        delivered: false,
        status: null,
        error: "No answer within 15 s.",
        answer: "",
        took_ms: 15_000,
      };
    },
    does: ({ press }) => press(`Send a test: ${URL}`),
    writes: `POST ${API}/${RECEIVER_ID}/test `,
    tells: "The test was not delivered. No answer within 15 s.",
  },
  {
    name: "rotates the secret of a receiver",
    ...onOne,
    does: async ({ press }) => {
      await press(`Rotate the secret: ${URL}`);
      await press("Rotate");
    },
    writes: `POST ${API}/${RECEIVER_ID}/rotate {}`,
    tells: NEW_SECRET,
  },
  {
    name: "disables a receiver",
    ...inList,
    does: ({ press }) => press(`Disable: ${URL}`),
    writes: `PATCH ${API}/${RECEIVER_ID} {"status":"disabled"}`,
    tells: "The receiver is disabled.",
  },
  {
    name: "removes a receiver",
    ...onOne,
    does: async ({ press }) => {
      await press(`Remove: ${URL}`);
      await press("Remove");
    },
    writes: `DELETE ${API}/${RECEIVER_ID} `,
    leads: RECEIVERS,
  },
  {
    name: "sends a delivery again",
    ...onOne,
    does: ({ press }) => press("Send again: change_request.opened"),
    writes: `POST ${API}/${RECEIVER_ID}/deliveries/d-3/replay `,
    tells: "The delivery is sent again.",
  },
];
