/** dashboard/notifications/events.ts: what the page says of each event for receivers, without the rest of its record. */
import { eventRecord, OUTBOUND_EVENTS } from "../src/features/notifications/rules/events.ts";

export const eventLabels = (): string => {
  const rows = OUTBOUND_EVENTS.map((type) => {
    const { label, isUsual } = eventRecord(type);
    return `  ${JSON.stringify(type)}: { label: ${JSON.stringify(label)}, isUsual: ${isUsual} },\n`;
  });
  return [
    "/** The events for receivers. `npm run docs` writes this file from the records of events in src/features/notifications. */\n",
    "export const EVENTS = {\n",
    ...rows,
    "} as const;\n\n",
    "export const EVENT_NAMES = Object.keys(EVENTS) as (keyof typeof EVENTS)[];\n",
  ].join("");
};
