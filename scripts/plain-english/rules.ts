/** The phrases that `npm run check` refuses. A list of patterns cannot tell good prose from bad; it finds habits. */

export interface Rule {
  /** Read without regard to case. A space stands for any white space, so that a phrase may be broken over two lines. */
  readonly pattern: string;
  readonly reason: string;
  readonly instead: string;
  /** True: a sentence that ends with a question mark may have it. */
  readonly exceptQuestions?: boolean;
  /** A sentence that the rule finds, and the same one as it should be. A test reads both. */
  readonly example: readonly [bad: string, good: string];
}

/** The start of a sentence or of a clause after a semicolon; `^` is the start of a comment, a string or a paragraph. */
const START = String.raw`(?:^|[.;!] |[-*] |\d\. |[A-Z]+\d+[:.]? )`;

export const RULES: readonly Rule[] = [
  {
    pattern: String.raw`\bwhoever\b`,
    reason: "it hides who acts",
    instead: "name the actor: the caller, the user, any client that",
    example: [
      "Whoever can read it can read every secret.",
      "Anyone who can read this file can read every secret.",
    ],
  },
  {
    pattern: `${START}whatever\\b`,
    reason: "the subject is a clause",
    instead: "name the thing: any process that, each value",
    example: ["Whatever runs is ended.", "Every running process is ended."],
  },
  {
    pattern: String.raw`\bnobody\b`,
    reason: "a negative subject must be turned round by the reader",
    instead: "say what does not happen: X is unused, X has no owner",
    example: ["Nobody works for the session.", "The session has no live agent."],
  },
  {
    pattern: String.raw`\bwhom\b`,
    reason: "it starts a nested clause",
    instead: "two sentences, or: who",
    example: ["Users of whom no token is left are deleted.", "Users without tokens are deleted."],
  },
  {
    pattern: String.raw`\bnone of (?!the above)`,
    reason: "a negative subject must be turned round by the reader",
    instead: "no X does, X does not",
    example: ["None of its commands is lost.", "No command is lost."],
  },
  {
    pattern: String.raw`\b(?:is|are|was|were) there\b`,
    reason: "the verb comes before its subject, or 'there' stands for a place",
    instead: "exists, is present, is in X",
    exceptQuestions: true,
    example: ["It waits until the row is there.", "It waits until the row exists."],
  },
  {
    pattern: String.raw`\b(?:is|are|was|were) not there\b`,
    reason: "'there' stands for a place that the sentence does not name",
    instead: "does not exist, is missing, not found",
    example: ["Something is not there.", "Not found."],
  },
  {
    pattern: String.raw`\bthere (?:is|are|was|were|being) (?:none|nobody)\b`,
    reason: "the sentence has no subject",
    instead: "null without X, X does not exist",
    example: ["The record; null where there is none.", "The record, or null if it does not exist."],
  },
  {
    pattern: String.raw`\bsuch an?\b`,
    reason: "it refers back to a sentence that the reader may not have read",
    instead: "name the thing, or: this X",
    example: ["Such a session cannot be restarted.", "A session with a deleted branch cannot be restarted."],
  },
  {
    pattern: String.raw`\bbe it\b`,
    reason: "an inversion",
    instead: "whether X or Y",
    example: ["Every request, be it late or not, is answered.", "Every request is answered, late or not."],
  },
  {
    pattern: `${START}what (?:[^.;:!? ]+ ){0,12}?(?:is|are|was|were|has|have|does|do)\\b`,
    reason: "the subject is a clause",
    instead: "a noun for the thing: the request, the remaining rows",
    exceptQuestions: true,
    example: ["What is not pushed is saved.", "Unpushed commits are saved."],
  },
  {
    pattern: String.raw`\b(?:is|are|was|were|would) to be\b(?! (?:honest|sure))`,
    reason: "it can mean must, will or should",
    instead: "must be, will be",
    example: ["Nothing is to be written.", "The caller must not write."],
  },
  {
    pattern: String.raw`\bto be had\b`,
    reason: "a passive that names no actor",
    instead: "available",
    example: ["No memory is to be had.", "No memory is available."],
  },
  {
    pattern: `(?:^|[,;:.] (?:and )?)(?:so|nor|neither) (?:is|are|was|were|do|does|did|has|have|can|would|will) (?:an?|the|it|they|one|its|their|what)\\b`,
    reason: "the verb comes before its subject",
    instead: "X also does, X does not either",
    example: [
      "Stopping a session saves; so does the end of one.",
      "Stopping or ending a session saves its work.",
    ],
  },
  {
    pattern: String.raw`\b(?:known|kept|told|left|heard) of\b`,
    reason: "a participle in place of a noun",
    instead: "the state of, the stored part of, the rest of",
    example: ["What is known of the poll.", "The state of the poll."],
  },
  {
    pattern: String.raw`\bnothing of (?:it|its|them|the|this|that|what|an?)\b`,
    reason: "a negative subject must be turned round by the reader",
    instead: "no part of X, X is not",
    example: ["Nothing of it is stored.", "It is not stored."],
  },
  {
    pattern: String.raw`\b(?:in vain|lest|hence|thereof|therein|thereby|wherein|whereby|whereupon|for want of|in silence)\b`,
    reason: "a word of old books",
    instead: "without success, so that, therefore, silently",
    example: ["Events are not dropped in silence.", "Events are not silently dropped."],
  },
];
