/**
 * Faults of objects that git's check knows and that harm no reader: histories of old tools have them, and git's own
 * servers accept them. One list for pushes, fetches and imports. Any other fault is refused, by its object and name.
 */
export const TOLERATED = [
  "badDate",
  "badDateOverflow",
  "badEmail",
  "badName",
  "badTimezone",
  "gitattributesLarge",
  "gitattributesLineLength",
  "missingEmail",
  "missingNameBeforeEmail",
  "missingSpaceBeforeDate",
  "missingSpaceBeforeEmail",
  "multipleAuthors",
  "zeroPaddedDate",
  "zeroPaddedFilemode",
] as const;

export const toleratedFaults: Readonly<Record<string, string>> = Object.fromEntries(
  ["receive", "fetch"].flatMap((door) => TOLERATED.map((fault) => [`${door}.fsck.${fault}`, "ignore"])),
);
