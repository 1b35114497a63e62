/** What a version of buildah can read. Older ones take the lines of a here-document for instructions, and may run them. */

export interface BuildahVersion {
  readonly text: string;
  readonly major: number;
  readonly minor: number;
}

/** The first version that reads here-documents. */
const HERE_DOCUMENTS = { major: 1, minor: 35 };

/** Reads the output of `buildah --version`. Null if it has another form. */
export const parseBuildahVersion = (output: string): BuildahVersion | null => {
  const [, text = "", major, minor] = /\bbuildah version ((\d+)\.(\d+)\S*)/.exec(output) ?? [];
  return major === undefined || minor === undefined
    ? null
    : { text, major: Number(major), minor: Number(minor) };
};

export const readsHereDocuments = ({ major, minor }: BuildahVersion): boolean =>
  major > HERE_DOCUMENTS.major || (major === HERE_DOCUMENTS.major && minor >= HERE_DOCUMENTS.minor);

export const noHereDocuments = (version: BuildahVersion | null): string =>
  `here-documents need buildah ${HERE_DOCUMENTS.major}.${HERE_DOCUMENTS.minor} or newer, and this node has ${version?.text ?? "an older one"}. Use RUN with && or COPY with a file`;
