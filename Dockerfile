# The course in JupyterLab, for one person, at http://127.0.0.1:8888 (the log has the address with its token):
#   docker build -t undertorch .
#   docker run --rm -p 127.0.0.1:8888:8888 -v lessons:/home/learner/course/my_lessons \
#     -v exercises:/home/learner/course/my_exercises undertorch
# The two volumes keep what the learner does, and their progress, when the container goes.
FROM python:3.13-slim AS packages
COPY requirements/course.txt /tmp/
# Without what nobody here runs: the packages' own tests, and the maps that browsers' debuggers read.
RUN python -m venv --without-pip /opt/venv \
    && python -m pip --python /opt/venv/bin/python install --no-cache-dir --no-compile \
        --require-hashes --only-binary=:all: -r /tmp/course.txt \
    && find /opt/venv -depth \( -type d -name tests -o -name '*.map' \) -exec rm -r {} +

FROM python:3.13-slim
RUN useradd --create-home --uid 1000 learner
COPY --from=packages /opt/venv /opt/venv
WORKDIR /home/learner/course
COPY --chown=learner . .
RUN mkdir -p my_lessons my_exercises && chown learner . my_lessons my_exercises
USER learner
ENV UNDERTORCH_PROGRESS=/home/learner/course/my_exercises/.progress.json
EXPOSE 8888
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["/opt/venv/bin/python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8888/api', timeout=5)"]
# Every address of the container: what the computer around it hands in, by -p, is for that to say. The token stays.
CMD ["/opt/venv/bin/python", "-m", "course", "lab", "--no-browser", "--port", "8888", "--", "--ServerApp.ip=0.0.0.0"]
