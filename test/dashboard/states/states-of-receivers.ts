/** States of a project's outbound webhooks. */
import type { World } from "../fakes/fake-service.ts";
import { RECEIVER_ID } from "../fakes/fake-receivers.ts";
import { PROJECT_ID } from "../samples/sample-project.ts";
import { pressed, refusing, type State, unfolded } from "./state-of-a-page.ts";
import { withRole } from "./states-of-people.ts";

const RECEIVERS = `#/projects/${PROJECT_ID}/notifications`;
const ONE = `${RECEIVERS}/${RECEIVER_ID}`;
const URL = "https://receiver.example.org/platform";

const none = (world: World): void => {
  world.receivers = [];
  world.deliveries = [];
};

export const STATES_OF_RECEIVERS: readonly State[] = [
  { name: "receivers", hash: RECEIVERS, shows: ".row" },
  { name: "receivers-empty", hash: RECEIVERS, shows: ".empty", change: none },
  { name: "receivers-viewer", hash: RECEIVERS, shows: ".row", change: withRole("viewer") },
  {
    name: "receivers-refused",
    hash: RECEIVERS,
    shows: "form",
    change: refusing("The request is not valid.", [["url", "The host `10.0.0.1` has no public address."]]),
    act: async (page) => {
      await page.getByLabel("Address").fill("https://10.0.0.1/hook");
      await page.keyboard.press("Enter");
      await page.locator(".refusal").waitFor();
    },
  },
  { name: "receivers-rotate", hash: ONE, shows: ".row", act: pressed(`Rotate the secret: ${URL}`) },
  { name: "receiver", hash: ONE, shows: ".row", act: unfolded("Content") },
  {
    name: "receiver-disabled",
    hash: ONE,
    shows: ".callout",
    change: (world) => {
      world.receivers = world.receivers.map((one) => ({
        ...one,
        status: "disabled",
        disabled_reason: "failing",
      }));
      world.deliveries = [];
    },
  },
];
