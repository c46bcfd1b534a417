// Every word the page shows, in both languages. Texts from the server are shown as they come.

const WORDS = {
  zh: {
    skip: "跳到输入框", newThread: "新对话", erase: "删除对话", message: "您的问题", send: "发送", stop: "停止",
    empty: "问一个关于企业数据或政策的问题。", log: "对话", you: "您", assistant: "助手",
    confirmErase: "删除整个对话？此操作无法撤销。",
    retry: "重试", discard: "放弃", resend: "重新发送", resume: "继续接收",
    next: "下一页", previous: "上一页", cancel: "取消", page: (page, pages) => `第 ${page} / ${pages} 页`,
    sources: "依据", source: (label, title) => `[${label}] ${title}`, version: "版本",
    sending: "正在发送…",
    endings: {
      completed: "回答完毕", needs_input: "请选择或补充", failed: "未能处理", stopped: "已停止", incomplete: "处理中断",
    },
    failed: "处理失败。可以重试，或放弃这一问。", stopped: "已停止", incomplete: "处理中断，可以重试。",
    lost: "连接中断。处理仍在继续，可以继续接收结果。", refused: "请求未被接受", partial: "回答到此中断",
    running: "处理中", past: "较早的提问；回答未保存在本页",
    stages: {
      gate: "理解请求…", intent: "分析问题…", clarify: "核对信息…", suggest: "整理可能的问题…",
      retrieve: "查找依据…", answer: "组织回答…",
    },
  },
  en: {
    skip: "Skip to the question box", newThread: "New conversation", erase: "Delete conversation",
    message: "Your question", send: "Send", stop: "Stop",
    empty: "Ask a question about company figures or policies.", log: "Conversation", you: "You",
    assistant: "Assistant", confirmErase: "Delete the whole conversation? This cannot be undone.",
    retry: "Retry", discard: "Discard", resend: "Send again", resume: "Resume",
    next: "Next", previous: "Previous", cancel: "Cancel", page: (page, pages) => `Page ${page} of ${pages}`,
    sources: "Sources", source: (label, title) => `[${label}] ${title}`, version: "version",
    sending: "Sending…",
    endings: {
      completed: "Answer complete", needs_input: "Please choose or add what is missing", failed: "Not processed",
      stopped: "Stopped", incomplete: "Cut short",
    },
    failed: "This could not be processed. Retry it or discard it.", stopped: "Stopped",
    incomplete: "This was cut short. You can retry.",
    lost: "The connection was lost. The work goes on; you can resume.", refused: "The request was not accepted",
    partial: "The answer ends here", running: "In progress",
    past: "An earlier question; its answer is not kept on this page",
    stages: {
      gate: "Reading the request…", intent: "Analysing the question…", clarify: "Checking details…",
      suggest: "Wording possible questions…", retrieve: "Looking for evidence…", answer: "Writing the answer…",
    },
  },
};

// What paging and cancel buttons send.
export const COMMANDS = {
  zh: { next: "下一页", previous: "上一页", cancel: "取消" },
  en: { next: "next", previous: "previous", cancel: "cancel" },
};

export function preferredLanguage() {
  const kept = localStorage.getItem("language");
  if (kept in WORDS) return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export function wordsOf(language) {
  return WORDS[language];
}

export function showWords(language) {
  const words = WORDS[language];
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-word]")) {
    element.textContent = words[element.dataset.word];
  }
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", words[element.dataset.label]);
  }
}
